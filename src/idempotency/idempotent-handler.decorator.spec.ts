import { INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { IdempotencyInterceptor } from './idempotency.interceptor.js';
import {
  IDEMPOTENT_HANDLER,
  IdempotentHandler,
  NATURALLY_IDEMPOTENT,
  NaturallyIdempotent,
} from './idempotent-handler.decorator.js';

const keyFrom = (sale: { saleId: string }): string => sale.saleId;

class Consumer {
  @IdempotentHandler(keyFrom)
  plain(): void {}

  @IdempotentHandler('sale.id', { consumer: 'shop/sale', retention: '1d', fingerprint: false })
  withOptions(): void {}

  @NaturallyIdempotent('it only reads')
  natural(): void {}
}

const metadata = (key: string, method: keyof Consumer): unknown =>
  Reflect.getMetadata(key, Consumer.prototype[method]);

describe('IdempotentHandler', () => {
  it('notes where the key is and the options as they were given', () => {
    expect(metadata(IDEMPOTENT_HANDLER, 'plain')).toEqual({ keyFrom, options: {} });
    expect(metadata(IDEMPOTENT_HANDLER, 'withOptions')).toEqual({
      keyFrom: 'sale.id',
      options: { consumer: 'shop/sale', retention: '1d', fingerprint: false },
    });
  });

  it('puts the interceptor around its method', () => {
    expect(metadata(INTERCEPTORS_METADATA, 'plain')).toEqual([IdempotencyInterceptor]);
  });

  it('leaves the other marks alone', () => {
    expect(metadata(NATURALLY_IDEMPOTENT, 'plain')).toBeUndefined();
  });
});

describe('NaturallyIdempotent', () => {
  it('notes the reason, and puts no interceptor around its method', () => {
    expect(metadata(NATURALLY_IDEMPOTENT, 'natural')).toBe('it only reads');
    expect(metadata(IDEMPOTENT_HANDLER, 'natural')).toBeUndefined();
    expect(metadata(INTERCEPTORS_METADATA, 'natural')).toBeUndefined();
  });
});

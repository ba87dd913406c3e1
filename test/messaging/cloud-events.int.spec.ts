import { gzipSync } from 'node:zlib';
import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import type { ConsumeMessage, Options } from 'amqplib';
import { DataSource } from 'typeorm';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { eventually, useCleanup } from '../support/index.js';
import {
  deadLetter,
  effects,
  place,
  Plans,
  recordEffect,
  settled,
  startOrders,
  type OrderService,
} from './orders.js';

interface Note {
  orderId: string;
}

@Controller()
class Events {
  constructor(
    private readonly dataSource: DataSource,
    private readonly plans: Plans,
  ) {}

  @EventPattern<string>('order.placed')
  @IdempotentHandler<Note>('orderId')
  async onOrder(@Payload() { orderId }: Note, @Ctx() context: RmqContext): Promise<void> {
    const { headers } = (context.getMessage() as ConsumeMessage).properties;
    const source = headers?.['cloudEvents:source'] as string | undefined;
    await recordEffect(this.dataSource, source === undefined ? orderId : `${orderId} ${source}`);
    await this.plans.act(orderId);
  }
}

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, { controllers: [Events], config: { concurrency: 1 } });
});

beforeEach(() => service.db.query('DELETE FROM effect'));

const BATCH = 'application/cloudevents-batch+json';
const STRUCTURED = 'application/cloudevents+json';
const attributes = (prefix: string, type = 'com.shop.order') => ({
  [`${prefix}specversion`]: '1.0',
  [`${prefix}id`]: 'e-1',
  [`${prefix}source`]: '/shop',
  [`${prefix}type`]: type,
});
const event = (more: object, type = 'com.shop.order') => ({
  specversion: '1.0',
  id: 'e-1',
  source: '/shop',
  type,
  ...more,
});
const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64');

async function expectEffects(expected: string[]): Promise<void> {
  await eventually(async () => expect(await effects(service.db)).toEqual(expected));
  await settled(service);
  expect(await effects(service.db)).toEqual(expected);
}

it.each(['cloudEvents:', 'cloudEvents_', 'ce-', 'ce_'])(
  'takes an event in binary mode, with attributes in headers %s…',
  async (prefix) => {
    const { broker } = service;
    const first = { orderId: `${prefix} 1` };
    const second = { orderId: `${prefix} 2` };
    await broker.publish('events', 'order.placed', first, { headers: attributes(prefix) });
    await broker.sendToQueue('commissions', second, {
      headers: attributes(prefix, 'order.placed'),
    });
    const source = prefix === 'cloudEvents:' ? ' /shop' : '';
    await expectEffects([`${prefix} 1${source}`, `${prefix} 2${source}`]);
  },
);

it('takes one fact for a duplicate, whichever way an event brings it', async () => {
  const { broker, settlements } = service;
  const data = { orderId: 'SAME' };
  const headers = attributes('ce-');
  const publish = (body: object | Buffer, options?: Options.Publish): Promise<void> =>
    broker.publish('events', 'order.placed', body, options);
  const { acked } = settlements;
  await publish(data, { headers, contentType: 'application/json; charset=utf-8' });
  await publish(gzipSync(JSON.stringify(data)), { headers, contentEncoding: 'gzip' });
  await publish(event({ data }), { contentType: STRUCTURED });
  await publish(event({ data_base64: base64(data) }), { contentType: STRUCTURED });
  await publish(data);
  await expectEffects(['SAME']);
  expect(settlements.acked).toBe(acked + 5);
});

it('knows an event in binary mode by its type and attributes after a retry', async () => {
  service.plans.plan('AGAIN', (run) => {
    if (run < 3) throw new Error('fails');
  });
  const headers = attributes('cloudEvents:', 'order.placed');
  await service.broker.sendToQueue('commissions', { orderId: 'AGAIN' }, { headers });
  await expectEffects(['AGAIN /shop']);
  expect(service.plans.runs('AGAIN')).toBe(3);
});

it.each<[string, string, string | object, Options.Publish]>([
  [
    'an event with XML, in binary mode',
    'unsupported-content-type',
    '<order/>',
    { headers: attributes('cloudEvents:'), contentType: 'text/xml' },
  ],
  [
    'an event with XML, in structured mode',
    'unsupported-content-type',
    event({ data: '<order/>', datacontenttype: 'text/xml' }),
    { contentType: STRUCTURED },
  ],
  ['a batch', 'unsupported-content-type', [event({})], { contentType: BATCH }],
  ['what is called an event', 'invalid-cloud-event', { orderId: 'X' }, { contentType: STRUCTURED }],
  [
    'data that is not Base64',
    'not-decodable',
    event({ data_base64: '*' }),
    { contentType: STRUCTURED },
  ],
  ['an event without data', 'invalid-key', event({}), { contentType: STRUCTURED }],
  ['an event with no body', 'invalid-key', '', { headers: attributes('ce-') }],
])(
  'dead-letters %s the first time, as it came, and others go on',
  async (what, reason, body, options) => {
    await service.broker.publish('events', 'order.placed', body, options);
    await place(service.broker, { orderId: what });
    const letter = await deadLetter(service.broker);
    expect(letter.body.toString()).toBe(typeof body === 'string' ? body : JSON.stringify(body));
    expect(letter.properties.contentType).toBe(options.contentType);
    expect(letter.headers).toMatchObject({
      ...options.headers,
      'x-dead-reason': reason,
      'x-attempt': 1,
    });
    await expectEffects([what]);
  },
);

import {
  BadRequestException,
  ForbiddenException,
  InternalServerErrorException,
  NotFoundException,
  UnauthorizedException,
  UnprocessableEntityException,
} from '@nestjs/common';
import { RpcException } from '@nestjs/microservices';
import { PermanentError, RetryLaterError, UnprocessableMessageError } from '../errors.js';
import { decisive, failureOf, type Failed, type Failure } from './failure.js';

class UnknownProductError extends PermanentError {
  override readonly name = 'UnknownProductError';
}

const unclassified = (): undefined => undefined;

describe('failureOf', () => {
  it.each<[string, unknown, string]>([
    ['a PermanentError', new PermanentError('x'), 'permanent-error'],
    ['a subclass of it', new UnknownProductError('x'), 'permanent-error'],
    ['a message that is not JSON', new UnprocessableMessageError('not-json', 'x'), 'not-json'],
    ["Nest's own refusal by a guard", new RpcException('Forbidden resource'), 'guard-refused'],
    ['a guard that throws 401', new UnauthorizedException(), 'guard-refused'],
    ['a guard that throws 403', new ForbiddenException(), 'guard-refused'],
    ['a pipe that throws 400', new BadRequestException(), 'invalid-payload'],
    ['a pipe that throws 422', new UnprocessableEntityException(), 'invalid-payload'],
  ])('takes %s for permanent', (_, error, reason) => {
    expect(failureOf(error, unclassified)).toEqual({ kind: 'permanent', reason, error });
  });

  it.each<[string, unknown]>([
    ['an error', new Error('x')],
    ['an RpcException', new RpcException('try again')],
    ['a 404', new NotFoundException()],
    ['a 500', new InternalServerErrorException()],
    ['a thrown text', 'x'],
    ['nothing at all', undefined],
  ])('takes %s for a failure that may pass', (_, error) => {
    expect(failureOf(error, unclassified)).toEqual({ kind: 'failed', error });
  });

  it('keeps the delay that a handler asks for', () => {
    const error = new RetryLaterError(60_000);
    expect(failureOf(error, unclassified)).toEqual({ kind: 'failed', error, retryAfterMs: 60_000 });
    for (const delayMs of [-1, Number.NaN, Infinity])
      expect(() => new RetryLaterError(delayMs)).toThrow(RangeError);
  });

  it('lets the application say what its errors mean', () => {
    const error = new Error('database away');
    const outage: Failure = { kind: 'outage', error };
    expect(failureOf(error, (asked) => (asked === error ? outage : undefined))).toBe(outage);
  });
});

describe('decisive', () => {
  const failed = (kind: Failure['kind'], attempts = 3): Failed => ({
    failure: { kind, reason: 'r', queue: 'q', error: new Error(kind) },
    consumer: 'commissions/sale.completed',
    schedule: { delaysMs: [1], attempts },
  });
  const all = (['outage', 'failed', 'busy', 'permanent', 'misplaced'] as const).map((kind) =>
    failed(kind),
  );

  it('finds none among none', () => {
    expect(decisive([])).toBeUndefined();
  });

  it.each([0, 1, 2, 3, 4])('prefers what may still succeed, from rank %d on', (rank) => {
    const left = all.slice(rank);
    expect(decisive(left)).toBe(left[0]);
    expect(decisive(left.toReversed())).toBe(left[0]);
  });

  it('takes the one with more attempts of two alike', () => {
    const [few, many] = [failed('failed', 2), failed('failed', 9)];
    expect(decisive([few, many])).toBe(many);
    expect(decisive([many, few])).toBe(many);
  });

  it('takes the first of two alike, and leaves the list alone', () => {
    const [outage, first] = all;
    const another = failed('failed');
    expect(decisive([first!, another])).toBe(first);
    expect(decisive([another, first!])).toBe(another);
    const list = [first!, outage!];
    expect(decisive(list)).toBe(outage);
    expect(list).toEqual([first, outage]);
  });
});

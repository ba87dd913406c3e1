import { QueryFailedError } from 'typeorm';
import {
  CommitOutcomeUnknownError,
  ConnectionLostError,
  DatabaseSilentError,
  DatabaseUnavailableError,
  PreparedStatementLostError,
  TransactionAbortedError,
  TransactionTimeoutError,
} from './errors.js';
import {
  isDatabaseOutage,
  isLockTimeout,
  isOutageState,
  isSerializationFailure,
  sqlStateOf,
} from './sql-state.js';

/** What PostgreSQL answered, as pg throws it. */
const answer = (code: string): Error =>
  Object.assign(new Error(`answered ${code}`), { code, severity: 'ERROR' });
/** What Node throws when there is no connection. */
const network = (code: string): Error => Object.assign(new Error(code), { code, errno: -111 });
const failed = (driverError: Error) => new QueryFailedError('SELECT 1', [], driverError);
const wrapped = (cause: unknown, times = 1): Error =>
  times === 0 ? (cause as Error) : new Error('wrapped', { cause: wrapped(cause, times - 1) });

describe('sqlStateOf', () => {
  it.each<[string, unknown, string | undefined]>([
    ['an answer', answer('23505'), '23505'],
    ["TypeORM's wrapping", failed(answer('23505')), '23505'],
    ['a cause', wrapped(answer('40001')), '40001'],
    ['causes and wrappings', wrapped(failed(answer('40P01')), 3), '40P01'],
    ['the eighth error of a chain', wrapped(answer('40001'), 7), '40001'],
    ['the ninth', wrapped(answer('40001'), 8), undefined],
    ['the outermost of two answers', Object.assign(answer('1'), { cause: answer('2') }), '1'],
    ["a code of Node's", network('ECONNREFUSED'), undefined],
    [
      'a code that is a number',
      Object.assign(new Error('x'), { code: 1, severity: 's' }),
      undefined,
    ],
    ['an ordinary error', new Error('x'), undefined],
    ['a text', '40001', undefined],
    ['null', null, undefined],
    ['undefined', undefined, undefined],
  ])('of %s', (_, error, state) => {
    expect(sqlStateOf(error)).toBe(state);
  });

  it('survives an error that is its own cause', () => {
    const error = new Error('x');
    error.cause = error;
    expect(sqlStateOf(error)).toBeUndefined();
    expect(isDatabaseOutage(error)).toBe(false);
  });
});

describe('isSerializationFailure', () => {
  it.each([
    ['40001', true],
    ['40P01', true],
    ['40000', false],
    ['40003', false],
    ['55P03', false],
  ])('%s: %j', (state, expected) => {
    expect(isSerializationFailure(failed(answer(state)))).toBe(expected);
  });

  it('says no to an error without a state', () => {
    expect(isSerializationFailure(new Error('x'))).toBe(false);
  });
});

describe('isLockTimeout', () => {
  it.each([
    ['55P03', true],
    ['57014', false],
    ['40P01', false],
  ])('%s: %j', (state, expected) => {
    expect(isLockTimeout(answer(state))).toBe(expected);
  });
});

describe('isDatabaseOutage', () => {
  const outages = ['08000', '08006', '53000', '53100', '53200', '53300', '25006'];
  const shutdowns = ['57P01', '57P02', '57P03', '57P04', '57P05'];
  const faults = ['23505', '22P02', '25P02', '40001', '42P01', '54000', '55P03', '57014', 'P0001'];

  it.each([...outages, ...shutdowns])('takes %s for one', (state) => {
    expect(isOutageState(state)).toBe(true);
    expect(isDatabaseOutage(answer(state))).toBe(true);
    expect(isDatabaseOutage(failed(answer(state)))).toBe(true);
  });

  it('takes 08P01 for one only when it ended the connection, as a pooler does', () => {
    const refusal = answer('08P01');
    expect(isDatabaseOutage(failed(refusal))).toBe(false);
    expect(isDatabaseOutage(new DatabaseUnavailableError(refusal))).toBe(true);
    expect(isDatabaseOutage(failed(Object.assign(answer('08P01'), { severity: 'FATAL' })))).toBe(
      true,
    );
  });

  it.each(faults)('takes %s for a fault of the message or its handler', (state) => {
    expect(isOutageState(state)).toBe(false);
    expect(isDatabaseOutage(answer(state))).toBe(false);
    expect(isDatabaseOutage(failed(answer(state)))).toBe(false);
  });

  it.each<[string, unknown]>([
    ['no connection', new DatabaseUnavailableError(network('ECONNREFUSED'))],
    ['no connection, refused by the server', new DatabaseUnavailableError(answer('28P01'))],
    ['a lost connection', new ConnectionLostError(network('ECONNRESET'))],
    ['an unknown outcome', new CommitOutcomeUnknownError(new Error('closed'))],
    ['a silent server', new DatabaseSilentError(1)],
    [
      'a pooler that lost a statement',
      failed(new PreparedStatementLostError('x', answer('26000'))),
    ],
    ['one of these as a cause', wrapped(new ConnectionLostError(new Error('x')), 2)],
    ['a query without a network', failed(network('EPIPE'))],
    ['a query on a dead client', failed(new Error('Connection terminated unexpectedly'))],
    [
      'a query that waited for the pool',
      failed(new Error('timeout exceeded when trying to connect')),
    ],
    [
      'a query on a closed client',
      wrapped(failed(new Error('Client was closed and is not queryable'))),
    ],
  ])('takes %s for one', (_, error) => {
    expect(isDatabaseOutage(error)).toBe(true);
  });

  it.each<[string, unknown]>([
    ['an ordinary error', new Error('x')],
    ["another server's refusal", network('ECONNREFUSED')],
    ["a text about another server's connection", new Error('Connection terminated unexpectedly')],
    ['a query that the driver could not write', failed(new TypeError('not a bigint'))],
    ['an aborted transaction', new TransactionAbortedError(answer('23505'))],
    ['a timeout', new TransactionTimeoutError(1)],
    ['the end of a session that idled in a transaction', new ConnectionLostError(answer('25P03'))],
    ['nothing', undefined],
  ])('does not take %s for one', (_, error) => {
    expect(isDatabaseOutage(error)).toBe(false);
  });
});

import { transactionControlIn } from './transaction-control.js';

describe('transactionControlIn', () => {
  it.each([
    ['COMMIT', 'COMMIT'],
    ['commit', 'COMMIT'],
    [' \n\tCommit;', 'COMMIT'],
    ['COMMIT AND CHAIN', 'COMMIT'],
    ['END', 'END'],
    ['END TRANSACTION', 'END'],
    ['ABORT', 'ABORT'],
    ['BEGIN', 'BEGIN'],
    ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'BEGIN'],
    ['START TRANSACTION', 'START TRANSACTION'],
    ["PREPARE TRANSACTION 'x'", 'PREPARE TRANSACTION'],
    ['ROLLBACK', 'ROLLBACK'],
    ['ROLLBACK WORK', 'ROLLBACK'],
    ['rollback transaction;', 'ROLLBACK'],
    ['ROLLBACK AND NO CHAIN', 'ROLLBACK'],
    ['/* x */ COMMIT', 'COMMIT'],
    ['/* a /* b */ c */ COMMIT', 'COMMIT'],
    ['-- x\nCOMMIT', 'COMMIT'],
    ['--x\n  /* y */--\nROLLBACK', 'ROLLBACK'],
    ['/**/COMMIT/**/', 'COMMIT'],
    ['rollback/* not to savepoint x */', 'ROLLBACK'],
    [';COMMIT', 'COMMIT'],
    ['SELECT 1; COMMIT', 'COMMIT'],
    ['INSERT INTO t VALUES (1); COMMIT; BEGIN', 'COMMIT'],
    ["SELECT ';'; /* ; */ ROLLBACK", 'ROLLBACK'],
    ["SELECT 'it''s'; COMMIT", 'COMMIT'],
    ["SELECT E'it\\'s;'; COMMIT", 'COMMIT'],
    ['SELECT "a;b"; COMMIT', 'COMMIT'],
    ['SELECT $$ ; $$; COMMIT', 'COMMIT'],
  ])('finds in %j: %s', (sql, control) => {
    expect(transactionControlIn(sql)).toBe(control);
  });

  it.each([
    '',
    'SELECT 1',
    'SAVEPOINT typeorm_1',
    'RELEASE SAVEPOINT typeorm_1',
    'ROLLBACK TO SAVEPOINT typeorm_1',
    'rollback to x',
    'ROLLBACK WORK TO SAVEPOINT x',
    'rollback transaction to savepoint x',
    'rollback /* only */ to savepoint x',
    'BEGINNING',
    'begin_x',
    'committed',
    'SELECT commit FROM t',
    'SELECT CASE WHEN a THEN b END FROM t',
    'SELECT CASE WHEN a THEN b\nEND',
    'PREPARE statement AS SELECT 1',
    'START',
    "INSERT INTO t VALUES ('; COMMIT')",
    "INSERT INTO t VALUES ('it''s; COMMIT')",
    "INSERT INTO t VALUES (E'it\\'; COMMIT')",
    'SELECT 1 AS "; COMMIT"',
    'SELECT 1 -- ; COMMIT',
    'SELECT 1 /* ; COMMIT */',
    'SELECT 1 /* /* */ ; COMMIT */',
    'DO $$ BEGIN PERFORM 1; END $$',
    'DO $body$ BEGIN PERFORM $$x$$; COMMIT; END $body$',
    '-- COMMIT',
    'SET TRANSACTION READ ONLY',
    'UPDATE t SET a = $1 WHERE b = $2',
  ])('finds nothing in %j', (sql) => {
    expect(transactionControlIn(sql)).toBeUndefined();
  });

  it('takes a long statement in its stride', () => {
    const values = Array.from({ length: 50_000 }, () => "('commit; $1 -- /*')").join(',');
    const started = performance.now();
    expect(transactionControlIn(`INSERT INTO t VALUES ${values}`)).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(3_000);
  });
});

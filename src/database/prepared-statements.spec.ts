import { PreparedStatements } from './prepared-statements.js';

it('gives a statement one name, and another statement another', () => {
  const statements = new PreparedStatements();
  const insert = 'INSERT INTO sale (id) VALUES ($1)';
  const first = statements.nameOf(insert, [1]);
  expect(first).toEqual(expect.any(String));
  expect(statements.nameOf(insert, [2])).toBe(first);
  expect(statements.nameOf('UPDATE sale SET paid = $1', [true])).not.toBe(first);
});

it('gives two statements that begin alike names that differ within what PostgreSQL keeps', () => {
  const begin = `INSERT INTO sale (${'x'.repeat(100)}`;
  const name = (end: string): string | undefined =>
    new PreparedStatements().nameOf(`${begin}${end}) VALUES ($1)`, [1])?.slice(0, 63);
  expect(name('a')).not.toBe(name('b'));
});

it.each([
  ['without parameters', 'DELETE FROM sale', undefined],
  ['with an empty list of parameters', 'DELETE FROM sale', []],
  ['that answers with rows', 'INSERT INTO sale (id) VALUES ($1) RETURNING id', [1]],
  ['that answers with rows, in small letters', 'update sale set a = $1\nreturning *', [1]],
  ['that reads', 'SELECT * FROM sale WHERE id = $1', [1]],
  ['that begins with WITH', 'WITH a AS (SELECT 1) INSERT INTO sale SELECT $1', [1]],
])('leaves a statement %s unprepared', (_, sql, parameters) => {
  expect(new PreparedStatements().nameOf(sql, parameters)).toBeUndefined();
});

it('stops giving names before a connection holds too many, and keeps those it gave', () => {
  const statements = new PreparedStatements();
  const nameOf = (column: number): string | undefined =>
    statements.nameOf(`INSERT INTO sale (c${column}) VALUES ($1)`, [1]);
  const names = Array.from({ length: 500 }, (_, column) => nameOf(column));
  expect(new Set(names.filter((name) => name !== undefined)).size).toBe(200);
  expect(nameOf(0)).toBe(names[0]);
});

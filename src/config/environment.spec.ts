import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from './configuration.error.js';
import { completed, parseEnvironment, type Environment } from './environment.js';

const schema = z.object({
  TOKEN: z.string().regex(/^t-/, 'must start with t-'),
  COUNT: z.string().regex(/^\d+$/, 'must be a number').default('1'),
  NOTE: z.string().optional(),
});

const directory = mkdtempSync(join(tmpdir(), 'environment-'));
const file = (content: string): string => {
  const path = join(directory, `${Math.random()}`);
  writeFileSync(path, content);
  return path;
};

afterAll(() => rmSync(directory, { recursive: true }));

function faultsOf(environment: Environment): readonly string[] {
  try {
    parseEnvironment(schema, environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as ConfigurationError).faults;
  }
  return [];
}

describe('parseEnvironment', () => {
  it('reads what is set, and completes it with defaults', () => {
    expect(parseEnvironment(schema, { TOKEN: 't-1', OTHER: 'x' })).toEqual({
      TOKEN: 't-1',
      COUNT: '1',
    });
  });

  it('takes an empty value for one that is not set', () => {
    expect(parseEnvironment(schema, { TOKEN: 't-1', COUNT: '', TOKEN_FILE: '' }).COUNT).toBe('1');
    expect(faultsOf({ TOKEN: '' })).toEqual(['TOKEN is not set']);
  });

  it('reads a value from a file, without the white space around it', () => {
    expect(parseEnvironment(schema, { TOKEN_FILE: file(' t-2\r\n') }).TOKEN).toBe('t-2');
  });

  it('reports every fault at once', () => {
    expect(faultsOf({ COUNT: 'x' })).toEqual(['TOKEN is not set', 'COUNT must be a number']);
    expect(faultsOf({ TOKEN_FILE: '/nowhere', COUNT: 'x', NOTE: 'n', NOTE_FILE: 'f' })).toEqual([
      'TOKEN_FILE names a file that cannot be read (ENOENT)',
      'NOTE_FILE and NOTE are both set: keep one of them',
      'COUNT must be a number',
    ]);
  });

  it.each<[string, () => Environment, string[]]>([
    [
      'a directory instead of a file',
      () => ({ TOKEN_FILE: directory }),
      ['TOKEN_FILE names a file that cannot be read (EISDIR)'],
    ],
    [
      'a path with a NUL',
      () => ({ TOKEN_FILE: 'a\0b' }),
      ['TOKEN_FILE names a file that cannot be read (ERR_INVALID_ARG_VALUE)'],
    ],
    ['an empty file', () => ({ TOKEN_FILE: file('\n') }), ['TOKEN must start with t-']],
  ])('reports %s', (_, environment, faults) => {
    expect(faultsOf(environment())).toEqual(faults);
  });

  it('shows every fault in one message, and no value', () => {
    const secret = 'hunter2';
    const parse = (): unknown =>
      parseEnvironment(schema, { TOKEN: secret, COUNT_FILE: file(secret), NOTE_FILE: secret });
    expect(parse).toThrow(
      'The configuration has faults:\n' +
        '  - NOTE_FILE names a file that cannot be read (ENOENT)\n' +
        '  - TOKEN must start with t-\n' +
        '  - COUNT must be a number\n' +
        'Every variable is described in .env.example.',
    );
    expect(parse).not.toThrow(secret);
  });
});

it.each<[string, Environment, Environment, Environment]>([
  ['adds what is not set', {}, { TOKEN: 'file' }, { TOKEN: 'file' }],
  ['keeps what is set', { TOKEN: 'set' }, { TOKEN: 'file' }, { TOKEN: 'set' }],
  ['fills in what is empty', { TOKEN: '' }, { TOKEN: 'file' }, { TOKEN: 'file' }],
  ['yields to a set NAME_FILE', { TOKEN_FILE: '/s' }, { TOKEN: 'file' }, { TOKEN_FILE: '/s' }],
  ['yields to a set NAME', { TOKEN: 'set' }, { TOKEN_FILE: '/f' }, { TOKEN: 'set' }],
])('.env %s', (_, environment, dotEnv, expected) => {
  expect(completed(environment, dotEnv)).toEqual(expected);
});

import { messageOf, nameOf, stackOf } from './error-text.js';

const circular: Record<string, unknown> = {};
circular['self'] = circular;
const toThrow = {
  toJSON: (): never => {
    throw new Error('no JSON');
  },
};
const odd = (fields: object): Error => Object.assign(new Error('x'), fields);

describe('nameOf', () => {
  it.each<[unknown, string]>([
    [new TypeError('x'), 'TypeError'],
    [odd({ name: 'n'.repeat(500) }), 'n'.repeat(200)],
    ['text', 'string'],
    [undefined, 'undefined'],
    [{}, 'object'],
  ])('names %p', (error, name) => {
    expect(nameOf(error)).toBe(name);
  });
});

describe('messageOf', () => {
  it.each<[unknown, string]>([
    [new Error('plain'), 'plain'],
    [new Error(''), ''],
    ['thrown text', 'thrown text'],
    [{ code: 7 }, '{"code":7}'],
    [new Error('at amqp://u:secret@h/v'), 'at amqp://***@h/v'],
    [{ url: 'amqp://u:secret@h/v' }, '{"url":"amqp://***@h/v"}'],
    [new Error('y'.repeat(5_000)), 'y'.repeat(1_000)],
  ])('tells %p', (error, message) => {
    expect(messageOf(error)).toBe(message);
  });

  it('takes the password out before it cuts the text', () => {
    const text = `${'z'.repeat(980)} amqp://user:secret-and-long@host`;
    expect(messageOf(new Error(text))).not.toContain('secret');
  });
});

it.each<[string, unknown]>([
  ['a circular object', circular],
  ['a bigint', 1n],
  ['a symbol', Symbol('s')],
  ['a function', () => 1],
  ['nothing', undefined],
  ['null', null],
  ['an object without a prototype', Object.create(null)],
  ['an object that refuses JSON', toThrow],
  ['an error without a message', odd({ message: undefined })],
  ['an error whose message is circular', odd({ message: circular })],
  ['an error whose name is none', odd({ name: undefined })],
  ['an error whose stack is none', odd({ stack: 7 })],
])('has texts for %s', (_, error) => {
  expect(typeof nameOf(error)).toBe('string');
  expect(typeof messageOf(error)).toBe('string');
  expect(['string', 'undefined']).toContain(typeof stackOf(error));
});

describe('stackOf', () => {
  it('gives the stack without passwords, and none for what has none', () => {
    const stack = stackOf(new Error('at amqp://u:secret@h'));
    expect(stack).toMatch(/^Error: at amqp:\/\/\*\*\*@h\n {4}at /);
    expect(stackOf('text')).toBeUndefined();
  });
});

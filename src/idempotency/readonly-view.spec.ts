import { readonlyView } from './readonly-view.js';

const payload = () => ({ id: 'S', order: { lines: [{ sku: 'b' }, { sku: 'a' }] }, note: null });

describe('readonlyView', () => {
  it('reads like the value itself', () => {
    const view = readonlyView(payload());
    expect(view.order.lines.map((line) => line.sku)).toEqual(['b', 'a']);
    expect(Array.isArray(view.order.lines)).toBe(true);
    expect('id' in view).toBe(true);
    expect(Object.keys(view)).toEqual(['id', 'order', 'note']);
    expect(JSON.stringify(view)).toBe(JSON.stringify(payload()));
    expect({ ...view }).toEqual(payload());
  });

  it.each([['S'], [7], [true], [null], [undefined]])('gives back %j as it is', (value) => {
    expect(readonlyView(value)).toBe(value);
  });

  it.each<[string, (view: ReturnType<typeof payload>) => unknown]>([
    ['sets a property', (view) => (view.id = 'other')],
    ['sets a property further down', (view) => (view.order.lines[0]!.sku = 'other')],
    ['adds a property', (view) => Object.assign(view, { added: 1 })],
    ['deletes a property', (view) => Reflect.deleteProperty(view, 'note')],
    ['defines a property', (view) => Object.defineProperty(view, 'id', { value: 1 })],
    ['sorts a list in place', (view) => view.order.lines.sort((a, b) => (a.sku < b.sku ? -1 : 1))],
    ['pushes to a list', (view) => view.order.lines.push({ sku: 'c' })],
    ['shortens a list', (view) => (view.order.lines.length = 0)],
    ['changes the prototype', (view) => Object.setPrototypeOf(view, null) as unknown],
    ['freezes it', (view) => Object.freeze(view.order)],
    ['prevents extensions', (view) => Object.preventExtensions(view)],
    [
      'changes what a destructured view holds',
      ({ order }) => Object.assign({ ...order }.lines[0]!, { sku: 'x' }),
    ],
    [
      'reaches into a property descriptor',
      (view) => {
        const { value } = Object.getOwnPropertyDescriptor(view, 'order')!;
        (value as { lines: unknown[] }).lines = [];
      },
    ],
  ])('throws when somebody %s', (_, change) => {
    const original = payload();
    expect(() => change(readonlyView(original))).toThrow('may only be read');
    expect(original).toEqual(payload());
    expect(Object.isExtensible(original) && Object.isExtensible(original.order)).toBe(true);
  });
});

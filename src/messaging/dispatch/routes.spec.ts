import 'reflect-metadata';
import { integer, listOf, oneOf, seeded, type Random } from '../../../test/support/random.js';
import type { PlannedHandler } from '../consume/queue-plan.js';
import { routeOf, Routes, topicsOverlap } from './routes.js';

const planned = (pattern: unknown, isEvent = true): PlannedHandler => ({
  pattern: routeOf(pattern),
  handler: () => Promise.resolve(),
  isEvent,
  schedule: { delaysMs: [1_000], attempts: 2 },
});

function matches(pattern: string, routingKey: string): boolean {
  const routes = new Routes([planned(pattern)]);
  return routes.match(routingKey).handlers.length === 1;
}

/** The definition itself: some way to replace each `#` by so many `*` fits word by word. */
function fits(pattern: string[], words: string[]): boolean {
  const hash = pattern.indexOf('#');
  if (hash === -1) {
    return (
      pattern.length === words.length &&
      pattern.every((word, index) => word === '*' || word === words[index])
    );
  }
  return Array.from({ length: words.length + 1 }, (_, stars) =>
    pattern.toSpliced(hash, 1, ...Array<string>(stars).fill('*')),
  ).some((replaced) => fits(replaced, words));
}

const dotted = (random: Random, words: string[], max: number): string =>
  [oneOf(random, words), ...listOf(random, max - 1, () => oneOf(random, words))].join('.');

describe('a topic', () => {
  it.each<[string, string, boolean]>([
    ['sale.completed', 'sale.completed', true],
    ['sale.completed', 'sale.completed.twice', false],
    ['sale.*', 'sale.completed', true],
    ['sale.*', 'sale', false],
    ['sale.*', 'sale.a.b', false],
    ['sale.*', 'sale.', true],
    ['*.completed', 'sale.completed', true],
    ['sale.#', 'sale', true],
    ['sale.#', 'sale.a.b.c', true],
    ['#.completed', 'completed', true],
    ['#.completed', 'sale.eu.completed', true],
    ['sale.#.completed', 'sale.completed', true],
    ['sale.#.completed', 'sale.a.b.completed', true],
    ['sale.#.completed', 'sale.a.b', false],
    ['#', '', true],
    ['#', 'any.thing', true],
    ['sal*', 'sale', false],
    ['a#', 'ab', false],
    ['Sale.completed', 'sale.completed', false],
    ['sale-completed', 'saleXcompleted', false],
  ])('%s takes %s: %j', (pattern, routingKey, taken) => {
    expect(matches(pattern, routingKey)).toBe(taken);
  });

  it('takes what its definition says, for random patterns and routing keys', () => {
    const random = seeded(7);
    let taken = 0;
    for (let run = 0; run < 2_000; run++) {
      const pattern = dotted(random, ['a', 'b', '*', '#', ''], 5);
      const routingKey = dotted(random, ['a', 'b', ''], integer(random, 1, 5));
      const expected = fits(pattern.split('.'), routingKey.split('.'));
      expect(`${pattern} ${routingKey} ${matches(pattern, routingKey)}`).toBe(
        `${pattern} ${routingKey} ${expected}`,
      );
      taken += expected ? 1 : 0;
    }
    expect(taken).toBeGreaterThan(200);
  });

  it('takes no routing key that is longer than AMQP allows, however many words it has', () => {
    expect(matches('#', 'a.'.repeat(127) + 'a')).toBe(true);
    expect(matches('#', 'a.'.repeat(500_000))).toBe(false);
    expect(matches('#.x.#', 'a.'.repeat(500_000))).toBe(false);
  });
});

describe('topicsOverlap', () => {
  it.each([
    ['sale.completed', 'sale.completed', true],
    ['sale.completed', 'sale.cancelled', false],
    ['sale.*', '*.completed', true],
    ['sale.*', 'sale', false],
    ['sale.#', 'sale', true],
    ['sale.#', '#.completed', true],
    ['sale.#', 'order.#', false],
    ['#', '#', true],
    ['*', '#.a.b', false],
    ['#.a', 'b.#', true],
    ['{"cmd":"sum"}', '{"cmd":"sum"}', true],
  ])('tells whether a message can be for %s and for %s: %s', (one, other, expected) => {
    expect(topicsOverlap(one, other)).toBe(expected);
    expect(topicsOverlap(other, one)).toBe(expected);
  });

  it('is true whenever a routing key matches both, for random topics', () => {
    const random = seeded(11);
    let both = 0;
    for (let run = 0; run < 5_000; run++) {
      const one = dotted(random, ['a', 'b', '*', '#'], 4);
      const other = dotted(random, ['a', 'b', '*', '#'], 4);
      const routingKey = dotted(random, ['a', 'b'], 4);
      if (matches(one, routingKey) && matches(other, routingKey)) {
        both++;
        expect(`${one} ${other} ${topicsOverlap(one, other)}`).toBe(`${one} ${other} true`);
      }
    }
    expect(both).toBeGreaterThan(200);
  });
});

describe('Routes', () => {
  const all = planned('sale.#');
  const exact = planned('sale.completed');
  const other = planned('order.placed');
  const anyRequest = planned('price.*', false);
  const request = planned('price.of', false);
  const routes = (...more: PlannedHandler[]): Routes =>
    new Routes([all, exact, other, anyRequest, request, ...more]);

  it('gives every event handler that matches, in the order they were added', () => {
    expect(routes().match('sale.completed')).toEqual({ handlers: [all, exact] });
  });

  it('gives both handlers of one pattern', () => {
    const another = planned('order.placed');
    expect(routes(another).match('order.placed').handlers).toEqual([other, another]);
  });

  it('gives one handler for a request, the one that names it before one that matches it', () => {
    expect(routes().match('price.of').handlers[0]).toBe(request);
    expect(routes().match('price.at').handlers[0]).toBe(anyRequest);
    expect(routes().match('price.of')).toEqual({ handlers: [request], request });
  });

  it('gives an event that also matches a request to both', () => {
    const event = planned('price.#');
    expect(routes(event).match('price.of')).toEqual({ handlers: [request, event], request });
  });

  it('gives none where nothing matches', () => {
    expect(routes().match('nothing')).toEqual({ handlers: [] });
  });

  it('takes an object pattern in any order of its properties, and as JSON', () => {
    const sum = planned({ cmd: 'sum', version: 1 }, false);
    const cmd = new Routes([sum]);
    expect(cmd.match(routeOf({ version: 1, cmd: 'sum' })).handlers).toEqual([sum]);
    expect(cmd.match(routeOf('{"version":1,"cmd":"sum"}')).handlers).toEqual([sum]);
  });

  it('matches a long pattern by its name', () => {
    const named = planned({ cmd: 'x'.repeat(300) }, false);
    const long = new Routes([named]);
    expect(long.match(routeOf({ cmd: 'x'.repeat(300) })).handlers).toEqual([named]);
  });
});

describe('routeOf', () => {
  it.each<[unknown, string]>([
    ['sale.completed', 'sale.completed'],
    [7, '7'],
    [{ b: 1, a: 'x' }, '{"a":"x","b":1}'],
    ['{"b":1,"a":"x"}', '{"a":"x","b":1}'],
    ['{not json', '{not json'],
    [{ a: null }, '{"a":null}'],
    [{ a: true }, '{"a":true}'],
    [[1, 'x'], '{"0":1,"1":"x"}'],
    [{}, '{}'],
  ])('makes a text of %j', (pattern, route) => {
    expect(routeOf(pattern)).toBe(route);
  });

  it('survives JSON in a pattern that is nested 100,000 deep', () => {
    const bomb = '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000);
    expect(typeof routeOf(bomb)).toBe('string');
  });
});

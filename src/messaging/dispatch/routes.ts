import type { MsPattern } from '@nestjs/microservices';
import { transformPatternToRoute } from '@nestjs/microservices/utils/index.js';
import type { PlannedHandler } from '../consume/queue-plan.js';

/** Of AMQP. A longer pattern came inside an envelope: topics are not for it, only equality. */
const LONGEST_ROUTING_KEY = 255;

interface Route {
  words: string[];
  to: PlannedHandler;
}

export interface Match {
  /** All that the message is for: every event handler that matches, and the request handler. */
  handlers: PlannedHandler[];
  /** The one that answers, if the message asks for an answer. */
  request: PlannedHandler | undefined;
}

/** A pattern as text: an object, or the JSON of one, in Nest's canonical form. */
export function routeOf(pattern: unknown): string {
  if (typeof pattern === 'string') {
    return pattern.startsWith('{') ? routeOfJson(pattern) : pattern;
  }
  return transformPatternToRoute(pattern as MsPattern);
}

function routeOfJson(pattern: string): string {
  try {
    return transformPatternToRoute(JSON.parse(pattern) as MsPattern);
  } catch {
    return pattern;
  }
}

/** The handlers of a queue by pattern. Patterns are topics: `*` is one word, `#` any number of words. */
export class Routes {
  private readonly routes: Route[];

  constructor(handlers: readonly PlannedHandler[]) {
    this.routes = handlers.map((to) => ({ words: to.pattern.split('.'), to }));
  }

  /**
   * The event handlers whose patterns match, all of them: the broker delivers one copy, however many
   * bindings match. A request has one handler.
   */
  match(pattern: string): Match {
    const words = pattern.length <= LONGEST_ROUTING_KEY ? pattern.split('.') : undefined;
    const matching = this.routes
      .filter(
        (route) =>
          route.to.pattern === pattern || (words !== undefined && matches(route.words, words)),
      )
      .map(({ to }) => to);
    const request =
      matching.find((to) => !to.isEvent && to.pattern === pattern) ??
      matching.find((to) => !to.isEvent);
    return { handlers: matching.filter((to) => to.isEvent || to === request), request };
  }
}

/** Whether the words of a routing key match those of a topic. */
export function matches(pattern: string[], words: string[], from = 0, at = 0): boolean {
  const word = pattern[from];
  if (word === undefined) {
    return at === words.length;
  }
  if (word === '#') {
    return (
      matches(pattern, words, from + 1, at) ||
      (at < words.length && matches(pattern, words, from, at + 1))
    );
  }
  return (
    at < words.length &&
    (word === '*' || word === words[at]) &&
    matches(pattern, words, from + 1, at + 1)
  );
}

/**
 * Whether some routing key matches both topics.
 *
 * @example topicsOverlap('sale.*', '#.completed') // true
 */
export function topicsOverlap(one: string, other: string): boolean {
  return one === other || overlap(one.split('.'), other.split('.'));
}

function overlap([a, ...restA]: string[], [b, ...restB]: string[]): boolean {
  if (a === undefined && b === undefined) {
    return true;
  }
  if (a === '#') {
    return (
      overlap(restA, b === undefined ? [] : [b, ...restB]) ||
      (b !== undefined && overlap(['#', ...restA], restB))
    );
  }
  if (b === '#') {
    return overlap(['#', ...restB], a === undefined ? [] : [a, ...restA]);
  }
  const meet = a !== undefined && b !== undefined && (a === '*' || b === '*' || a === b);
  return meet && overlap(restA, restB);
}

import { oneOf, seeded, text } from '../../test/support/random.js';
import { redactUrls } from './redact.js';

describe('redactUrls', () => {
  it.each([
    ['amqp://user:secret@host:5672/vhost', 'amqp://***@host:5672/vhost'],
    ['connect postgres://u:secret@h/db failed', 'connect postgres://***@h/db failed'],
    ['redis://:secret@h', 'redis://***@h'],
    ['AMQPS://u:secret@h', 'AMQPS://***@h'],
    ['amqp://u:p@secret@h/', 'amqp://***@h/'],
    ['amqp://u:sec/ret@h', 'amqp://***@h'],
    ['amqp://u:sec#ret@h', 'amqp://***@h'],
    ['amqp://u:sec?ret@h', 'amqp://***@h'],
    ['amqp://u:sec://ret@h', 'amqp://***@h'],
    ['RABBITMQ_amqp://u:secret@h', 'RABBITMQ_amqp://***@h'],
    ['"amqp://u:secret@h"', '"amqp://***@h"'],
    ['{"a":"amqp://u:secret@h","b":"amqp://u:secret@i"}', '{"a":"amqp://***@i"}'],
    ['amqp://u:secret@h amqp://v:secret@i', 'amqp://***@h amqp://***@i'],
    ['a\namqp://u:secret@h\nb', 'a\namqp://***@h\nb'],
    ['postgres:///db?host=/s&password=secret', 'postgres:///db?host=/s&password=***'],
    ['postgres://h/db?password=sec@ret&x=1', 'postgres://h/db?password=***&x=1'],
    ['postgres://u:secret@h/db?sslpassword=secret', 'postgres://***@h/db?sslpassword=***'],
    ['file:///node_modules/a.js,amqp://u:secret@h', 'file:///node_modules/a.js,amqp://***@h'],
  ])('makes %s %s', (given, redacted) => {
    expect(redactUrls(given)).toBe(redacted);
  });

  it.each([
    [''],
    ['no URL, but a@b.example and a: //'],
    ['amqp://host:5672/vhost'],
    ['http://localhost:3000/health/live is up'],
    ['    at run (file:///app/node_modules/@nestjs/core/router.js:10:5)'],
    ['a@b then http://host/'],
  ])('leaves "%s" as it is', (given) => {
    expect(redactUrls(given)).toBe(given);
  });

  it('leaves no password of a random URL, also where it makes the URL malformed', () => {
    const random = seeded(38);
    for (let run = 0; run < 2_000; run++) {
      const noise = (): string => text(random, '@:/#?&=%+.-"\'(){}[]<>,;!$\\|~^`é', 6);
      const password = `${noise()}hunter2${noise()}`;
      const scheme = oneOf(random, ['amqp', 'amqps', 'postgres', 'postgresql', 'redis', 'x+y']);
      const url = `${scheme}://user${noise()}:${password}@host:1/${text(random, 'ab/?', 5)}`;
      const redacted = redactUrls(`before ${url} after`);
      expect(`${url} ${redacted}`).not.toMatch(/ before .*(hunter2|user)/);
      expect(redacted).toMatch(/^before .* after$/);
      expect(redactUrls(redacted)).toBe(redacted);
    }
  });

  it.each([
    ['letters', 'a'],
    ['schemes', 'a://'],
    ['colons and slashes', '://'],
    ['dots', 'a.'],
    ['at signs', '@'],
    ['parameters', '?password='],
    ['blanks', ' '],
  ])('takes a megabyte of %s in its stride', (_, part) => {
    const long = part.repeat(1_000_000 / part.length);
    const started = performance.now();
    redactUrls(long);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

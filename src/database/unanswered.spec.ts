import { Unanswered } from './unanswered.js';

it('ignores nothing when nothing was sent, or all is answered', async () => {
  const unanswered = new Unanswered();
  expect(await unanswered.areIgnored(0)).toBe(false);
  unanswered.sent();
  unanswered.answered();
  expect(await unanswered.areIgnored(0)).toBe(false);
});

it('is ignored when one of two answers does not come', async () => {
  const unanswered = new Unanswered();
  unanswered.sent();
  unanswered.sent();
  unanswered.answered();
  expect(await unanswered.areIgnored(20)).toBe(true);
});

it('waits for an answer that comes in time', async () => {
  const unanswered = new Unanswered();
  unanswered.sent();
  setTimeout(unanswered.answered, 20);
  expect(await unanswered.areIgnored(10_000)).toBe(false);
});

it('counts from the last answer, as statements of one connection run one after another', async () => {
  const unanswered = new Unanswered();
  unanswered.sent();
  unanswered.sent();
  setTimeout(unanswered.answered, 150);
  const from = performance.now();
  expect(await unanswered.areIgnored(200)).toBe(true);
  expect(performance.now() - from).toBeGreaterThan(300);
});

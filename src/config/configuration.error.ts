/**
 * The environment is not usable. Lists every fault, so that one start shows them all; holds no
 * values, because some of them are secrets.
 */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';

  constructor(readonly faults: readonly string[]) {
    super(
      [
        'The configuration has faults:',
        ...faults.map((fault) => `  - ${fault}`),
        'Every variable is described in .env.example.',
      ].join('\n'),
    );
  }
}

/**
 * The configuration cannot be used. Each problem is one line that names the setting, its source and what is
 * allowed.
 */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

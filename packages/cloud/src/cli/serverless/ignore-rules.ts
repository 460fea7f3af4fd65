import ignore from 'ignore';
import type { Ignore } from 'ignore';

/** The rules of a `.berthignore` or `.gitignore` file. They mean the same as to git. */
export class IgnoreRules {
  readonly #rules: Ignore;

  constructor(text: string) {
    this.#rules = ignore({ ignoreCase: false }).add(text);
  }

  /**
   * For a path relative to the folder of the rules, with slashes. A file in an ignored folder is ignored too.
   */
  ignores(path: string, isFolder: boolean): boolean {
    return this.#rules.ignores(isFolder ? `${path}/` : path);
  }
}

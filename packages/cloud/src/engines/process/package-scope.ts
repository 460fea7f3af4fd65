import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Node reads what a `.js` file is from the nearest `package.json` above it. What people deploy must not mean
 * something else because the data folder lies below a package: the search ends at an empty one.
 */
export function endPackageScope(data: string): void {
  try {
    writeFileSync(join(data, 'package.json'), '{}\n', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Node takes the module type of a `.js` file from the nearest `package.json` above it. Deployed code must not
 * change its meaning because the data folder is inside some package, so an empty `package.json` ends the
 * search.
 */
export function endPackageScope(data: string): void {
  try {
    writeFileSync(join(data, 'package.json'), '{}\n', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

// Loaded into every test process: what it starts inherits the mark, by which leftover-processes.mjs finds it. At its end
// it tells the run what processor time it has used. Sources are found as the program finds them, in less time.
import { registerHooks } from 'node:module';
import { resolveSource } from '../packages/cloud/bin/resolve-source.js';
import { writeProcessorTime } from './test-durations.mjs';

registerHooks({ resolve: resolveSource });
process.env['BERTH_TEST_PROCESS'] = String(process.pid);
const usageFile = process.env['BERTH_TEST_USAGE'];
const testFile = process.argv[1];
if (usageFile !== undefined && testFile !== undefined && process.platform === 'linux')
  process.on('exit', () => writeProcessorTime(usageFile, testFile));

// Loaded into every test process: what it starts inherits the mark, by which leftover-processes.mjs finds it. At its end
// it tells the run what processor time it has used.
import { writeProcessorTime } from './test-durations.mjs';

process.env['BERTH_TEST_PROCESS'] = String(process.pid);
const usageFile = process.env['BERTH_TEST_USAGE'];
const testFile = process.argv[1];
if (usageFile !== undefined && testFile !== undefined && process.platform === 'linux')
  process.on('exit', () => writeProcessorTime(usageFile, testFile));

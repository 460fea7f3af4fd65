export { runSnapshot } from '../engines/process/snapshot-runner.ts';

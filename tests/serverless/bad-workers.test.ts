import { badWorkers } from './bad-workers.suite.ts';
import { processEngine } from '../support/engine-under-test.ts';

badWorkers('process', async () => processEngine());

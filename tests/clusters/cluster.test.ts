import { processEngine } from '../support/engine-under-test.ts';
import { clustersOn } from './cluster.suite.ts';

clustersOn('process', async () => processEngine());

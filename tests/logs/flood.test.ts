import { processEngine } from '../support/engine-under-test.ts';
import { floodOn } from './flood.suite.ts';

floodOn('process', async () => processEngine());

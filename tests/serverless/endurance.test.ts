import { idleEdge } from './idle-edge.suite.ts';
import { killUnderLoad } from './kill-under-load.suite.ts';
import { processEngine } from '../support/engine-under-test.ts';

const open = async () => processEngine();
idleEdge('process', open);
killUnderLoad('process', open);

import { pythonOf } from '../programs.ts';
import { workerSuite } from '../worker.suite.ts';

workerSuite(pythonOf('runpod'), { stops: true, fitness: true, wholeClient: true });

import { pythonOf } from '../programs.ts';
import { workerSuite } from '../worker.suite.ts';

workerSuite(pythonOf('runpod-earlier'), { stops: false, fitness: false, wholeClient: false });

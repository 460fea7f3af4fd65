import { workerConformance } from './worker-conformance.suite.ts';
import { TYPESCRIPT } from './worker-process.ts';

workerConformance(TYPESCRIPT);

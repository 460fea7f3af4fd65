import { installedPython } from '../python-programs.ts';
import { pythonWorkerSuite } from '../python-worker.suite.ts';

pythonWorkerSuite(installedPython('runpod'), { stops: true, fitness: true, wholeClient: true });

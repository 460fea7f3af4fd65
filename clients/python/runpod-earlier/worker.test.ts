import { installedPython } from '../python-programs.ts';
import { pythonWorkerSuite } from '../python-worker.suite.ts';

pythonWorkerSuite(installedPython('runpod-earlier'), { stops: false, fitness: false, wholeClient: false });

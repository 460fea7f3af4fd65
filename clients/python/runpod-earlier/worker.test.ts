import { pythonEnvironment } from '../../support/python-environment.mjs';
import { workerSuite } from '../worker.suite.ts';

workerSuite({ path: `${pythonEnvironment('runpod-earlier')}/bin/python` }, { stops: false, fitness: false, wholeClient: false });

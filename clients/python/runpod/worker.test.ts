import { pythonEnvironment } from '../../support/python-environment.mjs';
import { workerSuite } from '../worker.suite.ts';

workerSuite({ path: `${pythonEnvironment('runpod')}/bin/python` }, { stops: true, fitness: true, wholeClient: true });

import { test } from 'node:test';
import { workerConformance } from './worker-conformance.suite.ts';
import { pythonSdk } from './worker-process.ts';

const sdk = pythonSdk();
if (typeof sdk === 'string') test('the Python SDK', { skip: sdk }, () => undefined);
else workerConformance(sdk);

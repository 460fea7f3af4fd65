import { test } from 'node:test';
import { workerConformance } from './worker-conformance.suite.ts';
import { acceleratedSdk } from './worker-process.ts';

const sdk = acceleratedSdk();
if (typeof sdk === 'string') test('the public SDK, accelerated', { skip: sdk }, () => undefined);
else workerConformance(sdk);

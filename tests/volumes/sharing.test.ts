import { describe } from 'node:test';
import { processEngine } from '../support/engine-under-test.ts';
import { sharingSuite } from './sharing.suite.ts';

describe('sharing and copying files, on processes', () => sharingSuite(async () => processEngine()));

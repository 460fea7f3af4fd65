import { describePages } from './pages.suite.ts';

describePages('the code blocks of the documentation', [
  'docs/quick-start.md',
  'docs/endpoints.md',
  'docs/openai-handlers.md',
  'docs/job-api.md',
]);

import { describePages } from './pages.suite.ts';
import { pagesFor } from './pages.ts';

describePages('the code blocks of the examples', pagesFor('examples'));

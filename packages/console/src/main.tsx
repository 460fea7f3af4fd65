import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { firstReads } from './api/first-reads.ts';
import { queryClient } from './api/queries.ts';
import { ToastProvider } from './components/toast.tsx';
import { router } from './router.tsx';
import { applyTheme } from './shell/theme.ts';
import './styles/tokens.css';
import './styles/base.css';
import './styles/components.css';
import './styles/shell.css';

/** Longer than that is not waited: the page then shows that it loads. */
const MAX_WAIT_MS = 100;

function draw(): void {
  const root = document.getElementById('root');
  if (root === null) return;
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <ToastProvider>
          <RouterProvider router={router} />
        </ToastProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}

applyTheme();
// With its data and its page there, the first page is drawn once. What fails here is tried again, and shown, there.
void Promise.race([
  Promise.all([firstReads(queryClient, location.pathname), router.load()]),
  new Promise((resolve) => setTimeout(resolve, MAX_WAIT_MS)),
]).then(draw, draw);

import { useNavigate, useRouterState } from '@tanstack/react-router';
import { useWrite } from '../../api/queries.ts';
import type { Pod, PodAction } from '../../api/resources.ts';
import { ConfirmDialog } from '../../components/dialog.tsx';
import type { MenuEntry } from '../../components/menu.tsx';
import { useToasts } from '../../components/toast.tsx';
import { actionWords } from './pod-words.ts';

const LABELS: Record<PodAction, string> = {
  start: 'Start',
  stop: 'Stop',
  restart: 'Restart',
  terminate: 'Terminate',
};

/** What the pod can do now, as the server says. */
export function podActionEntries(pod: Pod, ask: (action: PodAction) => void): MenuEntry[] {
  return pod.actions.map((action) => ({
    label: LABELS[action],
    danger: action === 'terminate',
    onSelect: () => ask(action),
  }));
}

export function PodActionDialog({
  asked,
  onClose,
}: {
  asked: { pod: Pod; action: PodAction } | undefined;
  onClose: () => void;
}) {
  const act = useWrite('/v2/pods', '/v2/clusters');
  const toasts = useToasts();
  const navigate = useNavigate();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  if (asked === undefined) return null;
  const { pod, action } = asked;
  const { title, button, lost, danger } = actionWords(action, pod);
  const confirm = async (): Promise<void> => {
    await act.mutateAsync({ path: `/v2/pods/${pod.id}/action`, body: { action } });
    toasts.done(`${LABELS[action]}: ${pod.name}`);
    if (action === 'terminate' && path.startsWith(`/pods/${pod.id}`)) await navigate({ to: '/pods' });
  };
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={title}
      lost={lost}
      action={button}
      danger={danger}
      onConfirm={confirm}
      {...(action === 'terminate' && pod.mounts.persistent !== undefined && { word: pod.name })}
    />
  );
}

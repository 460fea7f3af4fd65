import { Link } from '@tanstack/react-router';
import type { Pod } from '../../api/resources.ts';
import { Badge } from '../../components/badge.tsx';
import { Command } from '../../components/copy.tsx';
import { formatDuration, formatMoney } from '../../components/format.ts';
import { Card, Facts, Stat } from '../../components/page.tsx';
import { EmptyState } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { Ago } from '../../components/time.tsx';
import { hardwareOf } from './pod-words.ts';

/** How to reach the pod, and how it is. */
export function PodConnect({ pod }: { pod: Pod }) {
  const { runtime } = pod;
  return (
    <div className="stack lg">
      {runtime !== null && (
        <div className="grid">
          <Stat label="Runs for" value={formatDuration(runtime.uptime * 1000)} />
          <Stat label="CPU" value={`${runtime.cpu.util} %`} />
          <Stat label="Memory" value={`${runtime.memory.util} %`} />
          {runtime.gpus.map((gpu, index) => (
            <Stat
              key={index}
              label={`GPU ${index}`}
              value={`${gpu.util} %`}
              hint={`memory ${gpu.memoryUtil} %`}
            />
          ))}
        </div>
      )}
      <Ports pod={pod} />
      <Card title="From a terminal">
        <div className="stack">
          <Command>{`npx berth exec ${pod.id} sh`}</Command>
          {pod.ssh.direct === null ? (
            <p className="muted">
              SSH: expose the port 22/tcp of an image with an SSH server, and add your key to the{' '}
              <Link to="/ssh-keys">SSH keys</Link>.
            </p>
          ) : (
            <Command>{pod.ssh.direct.command}</Command>
          )}
          <Command>{`npx berth pod cp ./file ${pod.id}:/path`}</Command>
        </div>
      </Card>
      <Card title="About">
        <Facts
          facts={[
            ['Id', <code>{pod.id}</code>],
            ['Hardware', hardwareOf(pod)],
            ['Data center', pod.dataCenterId],
            ['Cost', pod.cost === 0 ? 'nothing now' : `${formatMoney(pod.cost)} per hour`],
            ['Image', <code>{pod.image}</code>],
            ...(pod.args === '' ? [] : [['Command', <code>{pod.args}</code>] as [string, React.ReactNode]]),
            ['Storage', storageOf(pod)],
            ['Created', <Ago at={pod.createdAt} />],
            ['Started', <Ago at={pod.startedAt} />],
            ...(pod.cluster === undefined
              ? []
              : [
                  ['Cluster', <Link to={`/clusters/${pod.cluster.id}`}>{pod.cluster.id}</Link>] as [
                    string,
                    React.ReactNode,
                  ],
                ]),
          ]}
        />
      </Card>
    </div>
  );
}

function Ports({ pod }: { pod: Pod }) {
  const ports = pod.ports.map((text) => {
    const [number = '', protocol = 'http'] = text.split('/');
    const mapped = pod.runtime?.ports.find((port) => String(port.private) === number);
    return { number, protocol, mapped };
  });
  return (
    <Card flush title="Ports">
      <DataTable
        label="Ports"
        rows={ports}
        rowKey={({ number, protocol }) => `${number}/${protocol}`}
        columns={[
          { header: 'Port', cell: ({ number }) => <code>{number}</code> },
          { header: 'Protocol', cell: ({ protocol }) => <Badge>{protocol}</Badge> },
          {
            header: 'Address',
            cell: ({ number, protocol, mapped }) => {
              if (pod.status !== 'RUNNING') return <span className="muted">while it runs</span>;
              if (protocol === 'http')
                return (
                  <a href={`/proxy/${pod.id}-${number}/`} target="_blank" rel="noreferrer">
                    Open port {number}
                  </a>
                );
              return mapped?.public === undefined || mapped.public === null ? (
                <span className="muted">not open yet</span>
              ) : (
                <code>
                  {mapped.ip}:{mapped.public}
                </code>
              );
            },
          },
        ]}
        empty={
          <EmptyState title="No ports">
            Name the ports that it listens on in its settings, such as 8888/http.
          </EmptyState>
        }
      />
    </Card>
  );
}

function storageOf({ mounts, disk }: Pod): React.ReactNode {
  const network = mounts.network?.[0];
  if (network !== undefined)
    return (
      <>
        <Link to={`/storage/${network.volumeId}`}>network volume</Link> at <code>{network.path}</code>,
        container disk {disk} GB
      </>
    );
  return mounts.persistent === undefined
    ? `container disk of ${disk} GB, emptied at each restart`
    : `volume of ${mounts.persistent.size} GB at ${mounts.persistent.path}, container disk ${disk} GB`;
}

#!/usr/bin/env bash
# Builds the programs of a Kubernetes cluster for the tests from the Go module proxy: build.sh FOLDER
# It needs Go 1.24, gcc and about 17 minutes. Programs that are there are kept.
set -euo pipefail
target=$1
kubernetes=v1.34.1 etcd=v3.6.16 coredns=v1.14.3 kwok=v0.8.0 router=v1.6.1
mkdir -p "$target"
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS=-mod=mod

build() { # build NAME PACKAGE [LDFLAGS]
  [ -x "$target/$1" ] && return
  nice go build -ldflags "-s -w ${3:-}" -o "$target/$1.new" "$2"
  mv "$target/$1.new" "$target/$1"
}
enter() { # enter NAME: a module of its own
  mkdir "$work/$1"
  cd "$work/$1"
  printf 'module build\n\ngo 1.24.0\n' >go.mod
}

enter etcd
go get "go.etcd.io/etcd/server/v3@$etcd"
build etcd go.etcd.io/etcd/server/v3

enter coredns
go get "github.com/coredns/coredns@$coredns"
build coredns github.com/coredns/coredns

# Plays thousands of nodes for benchmarks.
enter kwok
go get "sigs.k8s.io/kwok/cmd/kwok@$kwok"
build kwok sigs.k8s.io/kwok/cmd/kwok

# Enforces network policies: this part of kube-router alone. The rest of it needs a lot more.
enter router
cat >main.go <<'GO'
package main

import (
	"sync"

	"github.com/cloudnativelabs/kube-router/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/pkg/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	access, err := clientcmd.BuildConfigFromFlags(config.Master, config.Kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		klog.Fatal(err)
	}
	stop := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &sync.Mutex{})
	if err != nil {
		klog.Fatal(err)
	}
	pods.AddEventHandler(controller.PodEventHandler)
	namespaces.AddEventHandler(controller.NamespaceEventHandler)
	policies.AddEventHandler(controller.NetworkPolicyEventHandler)
	heartbeats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range heartbeats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(heartbeats, stop, &running)
}
GO
go get "github.com/cloudnativelabs/kube-router@$router"
build kube-router .

# Every part of Kubernetes in one program, which the name it is started by chooses. Its staging modules have no versions of their own.
enter kube
source=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -nE 's/.*"Dir": "([^"]+)".*/\1/p')
{
  printf 'module build\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$kubernetes"
  sed -nE 's#^\t(k8s.io/[a-z-]+) v0\.0\.0$#\1 => \1 v0'"${kubernetes#v1}"'#p' "$source/go.mod"
  echo ')'
} >go.mod
cat >main.go <<'GO'
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
		"kube-controller-manager": func() *cobra.Command { return controllers.NewControllerManagerCommand() },
		"kube-proxy":              func() *cobra.Command { return proxy.NewProxyCommand() },
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kubectl":                 kubectl.NewDefaultKubectlCommand,
	}
	create, found := commands[filepath.Base(os.Args[0])]
	if !found {
		os.Exit(2)
	}
	os.Exit(cli.Run(create()))
}
GO
go mod tidy
version=k8s.io/component-base/version
build kube . "-X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=$(cut -d. -f2 <<<"$kubernetes")"
for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do ln -sfn kube "$target/$name"; done

# Holds the namespaces of a pod and reaps its zombies.
cat >"$work/pause.c" <<'C'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, 0, WNOHANG) > 0) continue;
}

static void leave(int signal) {
  (void)signal;
  _exit(0);
}

int main(void) {
  struct sigaction action = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGCHLD, &action, 0);
  signal(SIGTERM, leave);
  signal(SIGINT, leave);
  for (;;) pause();
}
C
[ -x "$target/pause" ] || gcc -Os -static -s -o "$target/pause" "$work/pause.c"

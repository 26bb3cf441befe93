package greeting

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var kube client.Client

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests with an API server, from $KUBEBUILDER_ASSETS, and the controller.
func run(m *testing.M) (code int, err error) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		cancel()
		if stopped := environment.Stop(); err == nil {
			err = stopped
		}
	}()
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return 1, err
	}
	kube = manager.GetClient()
	if err := (&Reconciler{Client: kube}).SetupWithManager(manager); err != nil {
		return 1, err
	}
	go func() {
		if err := manager.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the manager ended:", err)
		}
	}()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return 1, fmt.Errorf("the cache did not start")
	}
	return m.Run(), nil
}

func TestGreeting(t *testing.T) {
	ctx := context.Background()
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine", Labels: map[string]string{"greet": "yes"}},
		Data:       map[string]string{"name": "world"},
	}
	if err := kube.Create(ctx, made); err != nil {
		t.Fatal(err)
	}
	found := &corev1.ConfigMap{}
	greeted := func(ctx context.Context) (bool, error) {
		err := kube.Get(ctx, client.ObjectKeyFromObject(made), found)
		return found.Data["greeting"] == "Hello, world!", client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 10*time.Second, true, greeted); err != nil {
		t.Fatalf("no greeting in %v: %v", found.Data, err)
	}
}

// TestNamespaceIsRemoved fails with envtest's own programs, which run no controllers.
func TestNamespaceIsRemoved(t *testing.T) {
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "temporary"}}
	if err := kube.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if err := kube.Delete(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	gone := func(ctx context.Context) (bool, error) {
		err := kube.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return err != nil && client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 10*time.Second, true, gone); err != nil {
		t.Fatalf("the namespace is still there: %v", err)
	}
}

// Package greeting has a controller that greets in ConfigMaps.
package greeting

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reconciler sets data.greeting of ConfigMaps with the label greet=yes.
type Reconciler struct {
	client.Client
}

// Reconcile greets in one ConfigMap.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var found corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	greeting := "Hello, " + found.Data["name"] + "!"
	if found.Labels["greet"] != "yes" || found.Data["greeting"] == greeting {
		return ctrl.Result{}, nil
	}
	patch := client.MergeFrom(found.DeepCopy())
	if found.Data == nil {
		found.Data = map[string]string{}
	}
	found.Data["greeting"] = greeting
	return ctrl.Result{}, r.Patch(ctx, &found, patch)
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(r)
}

// Types of the values that the modules exchange. This module has no code.

/**
 * @typedef {object} Resource A served resource, from discovery.
 * @property {string} group "" for the core group.
 * @property {string} version
 * @property {string} resource The plural name.
 * @property {string} kind
 * @property {boolean} namespaced
 * @property {string[]} verbs
 * @property {string[]} shortNames
 * @property {string[]} subresources
 * @property {boolean} stale Whether the aggregated server does not answer.
 */

/**
 * @typedef {object} Meta Metadata of an object.
 * @property {string} name
 * @property {string} [namespace]
 * @property {string} uid
 * @property {string} [resourceVersion]
 * @property {string} creationTimestamp
 * @property {string} [deletionTimestamp]
 * @property {Record<string, string>} [labels]
 * @property {Record<string, string>} [annotations]
 * @property {OwnerReference[]} [ownerReferences]
 * @property {ManagedFields[]} [managedFields]
 */

/** @typedef {{ apiVersion: string, kind: string, name: string, uid: string, controller?: boolean }} OwnerReference */
/** @typedef {{ manager: string, operation: string, subresource?: string, fieldsV1?: any }} ManagedFields */

/**
 * @typedef {object} KubeObject An object of the API.
 * @property {string} apiVersion
 * @property {string} kind
 * @property {Meta} metadata
 * @property {any} [spec]
 * @property {any} [status]
 */

/** @typedef {{ name: string, format?: string, description?: string, priority?: number, type?: string }} Column */
/** @typedef {{ cells: any[], object: { metadata: Meta } }} TableRow */
/** @typedef {{ columnDefinitions: Column[], rows: TableRow[], metadata: { resourceVersion: string, continue?: string } }} Table */

/** @typedef {Record<string, string>} Question The parameters of /kubetwist/v1/why for a forbidden request. */

/**
 * @typedef {object} View What is shown beside the list of kinds.
 * @property {HTMLElement} element
 * @property {string} title
 * @property {(() => void) | null} [close] Stops requests and timers.
 * @property {(() => boolean) | null} [unsaved] Returns whether leaving would lose changes.
 * @property {HTMLInputElement} [filter] The field to which "/" moves.
 * @property {HTMLElement} [focus] What gets the focus when the view is shown; the heading by default.
 * @property {() => { namespace: string, name: string } | null} [current] Returns the selected object.
 */

/** @typedef {{ resource: Resource, namespace: string, name: string, path: string }} Target One object by its name. */

export {};

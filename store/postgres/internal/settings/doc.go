// Package settings is what code declares and operators set: declarations of live
// versions, overrides, pauses, the revision of all that, and the audit of what
// operators did.
package settings

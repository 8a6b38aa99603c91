package store_test

import (
	"testing"

	"github.com/pawlwork/pawl/store"
)

func TestChangesHaveNames(t *testing.T) {
	for change, want := range map[store.Change]string{
		store.NotFound: "not found", store.Changed: "changed", store.Asked: "asked", store.Ended: "ended",
		store.Duplicate: "duplicate", store.Active: "active", store.Busy: "busy",
		0: "change(0)", 99: "change(99)",
	} {
		if got := change.String(); got != want {
			t.Errorf("change %d is %q, want %q", uint8(change), got, want)
		}
	}
}

func TestMigrateModesHaveNames(t *testing.T) {
	for mode, want := range map[store.Migrate]string{
		store.MigrateAuto: "auto", store.MigrateCheck: "check", store.MigrateOff: "off",
		-1: "migrate(-1)", 9: "migrate(9)",
	} {
		if got := mode.String(); got != want {
			t.Errorf("mode %d is %q, want %q", int(mode), got, want)
		}
	}
}

func TestSubjectsHaveNames(t *testing.T) {
	for subject, want := range map[store.Subject]string{
		store.SubjectAll: "everything", store.SubjectQueue: "queue", store.SubjectJob: "job", store.SubjectMembers: "members",
		store.SubjectSetting: "setting", store.SubjectTopic: "topic", store.SubjectIntent: "intent",
		-1: "subject(-1)", 99: "subject(99)",
	} {
		if got := subject.String(); got != want {
			t.Errorf("subject %d is %q, want %q", int(subject), got, want)
		}
	}
}

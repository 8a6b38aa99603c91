package store

import "fmt"

var migrateNames = [...]string{MigrateAuto: "auto", MigrateCheck: "check", MigrateOff: "off"}

func (m Migrate) String() string {
	if m < 0 || int(m) >= len(migrateNames) {
		return fmt.Sprintf("migrate(%d)", int(m))
	}
	return migrateNames[m]
}

var changeNames = [...]string{
	NotFound: "not found", Changed: "changed", Asked: "asked", Ended: "ended",
	Duplicate: "duplicate", Active: "active", Busy: "busy", Same: "same",
}

func (c Change) String() string {
	if c < NotFound || int(c) >= len(changeNames) {
		return fmt.Sprintf("change(%d)", uint8(c))
	}
	return changeNames[c]
}

var subjectNames = [...]string{
	SubjectAll: "everything", SubjectQueue: "queue", SubjectJob: "job", SubjectMembers: "members",
	SubjectSetting: "setting", SubjectTopic: "topic", SubjectIntent: "intent",
	SubjectDelay: "delay",
}

func (s Subject) String() string {
	if s < SubjectAll || int(s) >= len(subjectNames) {
		return fmt.Sprintf("subject(%d)", int(s))
	}
	return subjectNames[s]
}

var repairNames = [...]string{
	RepairDone: "repaired", RepairNotNeeded: "not broken any more", RepairBusy: "held by somebody's transaction: try again",
	RepairImpossible: "cannot be repaired",
}

func (a RepairAnswer) String() string {
	if a < RepairDone || int(a) >= len(repairNames) {
		return fmt.Sprintf("repair(%d)", uint8(a))
	}
	return repairNames[a]
}

package postgres

// settingRoom is what operators have set: pauses of queues, and who did what.
type settingRoom struct {
	pg    *DB
	hints *hintRoom
}

func newSettingRoom(db *DB, hints *hintRoom) *settingRoom { return &settingRoom{pg: db, hints: hints} }

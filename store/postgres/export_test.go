package postgres

// Listening is what Open returns where the store listens, for tests outside of the
// package that stand in front of it.
type Listening = listening

package runner

// Portion lets the model of a cluster use the rule that runners use.
var Portion = portion

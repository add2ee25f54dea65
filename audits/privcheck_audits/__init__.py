"""The auditors: they run mechanisms on neighbouring data and bound the privacy loss from below."""

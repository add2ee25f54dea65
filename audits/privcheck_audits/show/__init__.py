"""What an audit hands over for its report."""

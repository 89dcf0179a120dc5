"""Small questions to a model beside a conversation: titles, and notes about turns."""

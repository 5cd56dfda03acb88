"""Reporting: tables of stores, claims of papers, what the papers print, paper versus code."""

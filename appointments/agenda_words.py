"""The words of clinics: over a column, before a colon in an event, and in an event's title.

All folded, as names.fold() gives them.
"""

# Headings that name a column; the best name first. In an event they are labels: «Paciente: Ana Paz».
COLUMNS = {
    "patient": ["paciente", "nombre del paciente", "nombre y apellido", "nombres y apellidos",
                "nombre completo", "patient", "patient name", "nombre", "nombres", "name"],
    "surname": ["apellido", "apellidos", "last name", "surname"],
    "phone": ["telefono", "celular", "telefono celular", "movil", "telefono movil", "telefonos", "whatsapp",
              "phone", "mobile", "phone number", "tlf", "telf", "tel", "cel", "telefono de contacto",
              "numero de telefono"],
    "email": ["correo", "correo electronico", "email", "e mail", "mail"],
    "doctor": ["medico", "doctor", "doctora", "medica", "doctor a", "medico tratante", "nombre del medico",
               "profesional", "physician", "doctor name"],
    "specialty": ["especialidad", "specialty"],
    "office": ["consultorio", "sede", "office", "lugar", "location"],
    "date": ["fecha", "fecha de la cita", "fecha cita", "dia", "date"],
    "start": ["hora", "hora de inicio", "hora inicio", "inicio", "hora de la cita", "start", "start time",
              "time"],
    "duration": ["duracion", "duracion min", "duracion minutos", "duracion en minutos", "minutos",
                 "duration", "duration minutes"],
    "external id": ["id", "external id", "identificador", "id externo", "id de la cita", "id cita",
                    "codigo", "nro de cita", "numero de cita"],
    "booked at": ["reservada", "reservada el", "fecha de reserva", "reserva", "booked at", "created at"],
    "accepts whatsapp": ["acepta whatsapp", "accepts whatsapp", "consentimiento", "consentimiento whatsapp",
                         "autoriza whatsapp", "acepta mensajes", "consent"],
}  # fmt: skip

VISIT = {
    "cita", "consulta", "control", "paciente", "turno", "visita", "seguimiento", "evaluacion", "chequeo",
    "revision", "reconsulta", "teleconsulta", "primera", "segunda", "1ra", "1era", "2da", "vez", "nueva",
    "nuevo", "medica", "medico", "online", "virtual", "presencial", "appointment", "checkup", "patient",
}  # fmt: skip
"""Before a name in a title they say that it is a patient's."""

BEFORE_A_NAME = {"de", "con", "para", "a", "sr", "sra", "srta", "don", "dona"}

NO_VISIT = {
    "almuerzo", "comida", "desayuno", "merienda", "cena", "descanso", "pausa", "bloqueado", "bloqueada",
    "bloqueo", "bloquear", "ocupado", "ocupada", "busy", "libre", "disponible", "feriado", "vacaciones",
    "permiso", "reunion", "junta", "congreso", "jornada", "jornadas", "curso", "taller", "clase", "guardia",
    "viaje", "vuelo", "llamar", "llamada", "pagar", "comprar", "enviar", "buscar", "banco", "cumpleanos",
    "aniversario", "visitador", "contador", "feliz", "lunch", "dinner", "meeting", "holiday", "blocked",
    "break", "call", "personal", "privado",
}  # fmt: skip
"""In a title they say that no patient is expected, whoever else is; unless one of VISIT stands there too."""

NEVER_IN_A_NAME = NO_VISIT | {
    "dia", "semana", "quirofano", "laboratorio", "oficina", "consultorio", "clinica", "hospital", "general",
    "interna", "medicina", "familiar", "nutricion", "terapia", "sesion", "sano", "examen", "eco", "rayos",
    "limpieza", "cirugia", "entre", "between", "and", "with", "el", "un", "una", "en", "por", "al", "sin",
    "no", "min", "minutos", "horas",
}  # fmt: skip
"""A title, or a part of it, with one of them names a thing, or two people."""

NEVER_ENDS_A_NAME = ("logia", "logica", "logico", "iatria", "grafia", "grama", "scopia", "terapia")
